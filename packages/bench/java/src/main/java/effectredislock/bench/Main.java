package effectredislock.bench;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson as it is measured: a process that performs tasks on command. Every line of the input is one task with its order,
 * {@code {"id": ..., "task": ..., "order": ...}}; every line of the output except the first is a report,
 * {@code {"id": ..., "report": ...}}. The process ends with its input.
 */
public final class Main {
    private final List<RedissonClient> servers;
    private final Waiters waiters;
    private final Holding holding;
    private final Gson gson = new Gson();

    private Main(List<RedissonClient> servers) {
        this.servers = servers;
        RedissonClient redisson = servers.get(0);
        this.waiters = new Waiters(redisson);
        this.holding = new Holding(redisson);
    }

    public static void main(String[] arguments) throws Exception {
        long leaseMillis = Long.parseLong(arguments[0]);
        // Redisson with its defaults, except for the address and the lease.
        List<RedissonClient> servers = new ArrayList<>();
        for (int i = 1; i < arguments.length; i++) {
            Config config = new Config();
            config.setLockWatchdogTimeout(leaseMillis);
            config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[i]);
            servers.add(Redisson.create(config));
        }
        Main main = new Main(servers);

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
            problem.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private Object perform(String task, JsonElement order) throws Exception {
        switch (task) {
            case "pairs":
                return Pairs.run(servers, gson.fromJson(order, Pairs.Order.class));
            case "contend":
                return Contention.run(servers.get(0), gson.fromJson(order, Contention.Order.class));
            case "wait":
                waiters.start(gson.fromJson(order, Waiters.Order.class));
                return null;
            case "gaveUp":
                return waiters.gaveUp();
            case "hold":
                holding.take(gson.fromJson(order, Holding.Order.class));
                return null;
            case "lost":
                return holding.lost();
            case "release":
                holding.release();
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
