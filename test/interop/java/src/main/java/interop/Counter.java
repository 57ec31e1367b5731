package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * A number that another process keeps, behind a TCP port of this machine. It is read and written in two steps, so that whoever
 * comes in between loses an increment.
 */
final class Counter implements AutoCloseable {
  private final Socket socket;
  private final BufferedReader in;
  private final Writer out;

  Counter(int port) throws IOException {
    socket = new Socket(InetAddress.getLoopbackAddress(), port);
    socket.setTcpNoDelay(true);
    in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    out = new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8);
  }

  void increment() throws IOException {
    long value = Long.parseLong(ask("get"));
    ask("set " + (value + 1));
  }

  private String ask(String request) throws IOException {
    out.write(request + "\n");
    out.flush();
    return in.readLine();
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
