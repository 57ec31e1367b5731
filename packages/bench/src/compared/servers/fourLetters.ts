import { connect } from "node:net"

/** Asks ZooKeeper with one of its four-letter words. */
export const fourLetters = (port: number, word: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(word))
    socket.setEncoding("utf8").on("data", (text: string) => {
      answer += text
    })
    socket.on("error", reject)
    socket.on("close", () => resolve(answer))
  })
