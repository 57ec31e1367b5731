package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;

/**
 * A Redisson client (or one for each of several servers) that does what it is told, line by line, as JSON on stdin. The first line is the {@link Settings}; every
 * further one a command for one named thread, which is a real thread and so an owner of its own. Answers go to stdout, in
 * the order in which they are there, with the id of their command: {"id":7,"ok":true} or {"id":7,"error":"..."}. The action
 * "awake" needs no thread: it is answered at once.
 *
 * It ends when stdin does, without giving anything back.
 */
public final class Main {
  private static final ObjectMapper json = new ObjectMapper();
  private static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
  private static final Set<Thread> busy = ConcurrentHashMap.newKeySet();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    List<RedissonClient> clients = Settings.parse(json.readTree(in.readLine())).stream().map(Redisson::create).toList();
    Commands commands = new Commands(clients);
    answer(0, "ok", clients.get(0).getId());
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode command = json.readTree(line);
      if (command.path("action").asText().equals("awake")) {
        answer(command.path("id").asInt(), "ok", awake());
        continue;
      }
      String thread = command.path("thread").asText("main");
      threads.computeIfAbsent(thread, Main::newThread).execute(() -> run(commands, command));
    }
    Runtime.getRuntime().halt(0);
  }

  private static ExecutorService newThread(String name) {
    return Executors.newSingleThreadExecutor(task -> {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      return thread;
    });
  }

  private static void run(Commands commands, JsonNode command) {
    int id = command.path("id").asInt();
    busy.add(Thread.currentThread());
    try {
      answer(id, "ok", commands.run(command));
    } catch (Throwable problem) {
      answer(id, "error", problem.toString());
    } finally {
      busy.remove(Thread.currentThread());
    }
  }

  /** How many threads are at work, or wait for an answer of Redis, and not for somebody who wakes them. */
  private static long awake() {
    return busy.stream().map(LockSupport::getBlocker).filter(Main::isNoLatch).count();
  }

  private static boolean isNoLatch(Object blocker) {
    return blocker == null || blocker.getClass().getName().startsWith("java.util.concurrent.CompletableFuture");
  }

  private static void answer(int id, String field, Object value) {
    ObjectNode answer = json.createObjectNode().put("id", id).putPOJO(field, value);
    synchronized (out) {
      out.println(answer);
    }
  }

  private Main() {}
}
