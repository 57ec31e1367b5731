package effectredislock.bench;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * A library as it is measured: a process that performs tasks on command. Its arguments are the library, {@code redisson} or
 * {@code curator}, the lease in milliseconds and the servers' ports. Every line of the input is one task with its order,
 * {@code {"id": ..., "task": ..., "order": ...}}; every line of the output except the first is a report,
 * {@code {"id": ..., "report": ...}}. The process ends with its input.
 */
public final class Main {
    private final Library library;
    private final Waiters waiters;
    private final Gson gson = new Gson();

    static final class Held {
        String kind;
        List<String> names;
        /** Who holds them, of several in this process. */
        long owner = 1;
    }

    private Main(Library library) {
        this.library = library;
        this.waiters = new Waiters(library);
    }

    public static void main(String[] arguments) throws Exception {
        long leaseMillis = Long.parseLong(arguments[1]);
        List<String> ports = Arrays.asList(arguments).subList(2, arguments.length);
        Main main = new Main(
            arguments[0].equals("curator")
                ? new CuratorLibrary(leaseMillis, ports)
                : new RedissonLibrary(leaseMillis, ports));

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        main.say("{\"ready\":true}");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject command = JsonParser.parseString(line).getAsJsonObject();
            // a long task must not delay the replies to others
            new Thread(() -> main.answer(command)).start();
        }
        // threads that still wait must not keep the process alive
        Runtime.getRuntime().halt(0);
    }

    private synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void answer(JsonObject command) {
        try {
            JsonObject answer = new JsonObject();
            answer.add("id", command.get("id"));
            answer.add("report", gson.toJsonTree(perform(command.get("task").getAsString(), command.get("order"))));
            say(gson.toJson(answer));
        } catch (Exception problem) {
            JsonObject answer = new JsonObject();
            answer.add("id", command.get("id"));
            answer.addProperty("error", problem.toString());
            say(gson.toJson(answer));
        }
    }

    private Object perform(String task, JsonElement order) throws Exception {
        switch (task) {
            case "pairs":
                return Pairs.run(library, gson.fromJson(order, Pairs.Order.class));
            case "contend":
                return Contention.run(library, gson.fromJson(order, Contention.Order.class));
            case "wait":
                waiters.start(gson.fromJson(order, Waiters.Order.class));
                return null;
            case "gaveUp":
                return waiters.gaveUp();
            case "hold":
                Held held = gson.fromJson(order, Held.class);
                library.hold(held.kind, held.names, held.owner);
                return null;
            case "lost":
                // neither library reports losses: Redisson's are counted in Redis
                return 0;
            case "release":
                Held by = gson.fromJson(order, Held.class);
                library.release(by == null ? 1 : by.owner);
                return null;
            case "cpuMicros":
                return cpuMicros();
            case "heapBytes":
                return heapBytes();
            default:
                throw new IllegalArgumentException("there is no task " + task);
        }
    }

    /** The CPU time of this process, including the compiler and the garbage collector. */
    private static long cpuMicros() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1000;
    }

    /** The heap after a garbage collection; the stacks of threads are not on it. */
    private static long heapBytes() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
