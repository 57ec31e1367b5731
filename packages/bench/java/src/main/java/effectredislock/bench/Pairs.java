package effectredislock.bench;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Workers that acquire and release uncontended locks, pair after pair. */
final class Pairs {
    static final class Order {
        String prefix;
        /** "lock"; "red", on the majority of all servers; "multi", three of one server at once. */
        String kind;
        /** A lock for every pair, or one for every worker. */
        String lockPer;
        int workers;
        int pairs;
    }

    static final class Report {
        double p50Micros;
        double p99Micros;
        double millis;
    }

    static Report run(List<RedissonClient> servers, Order order) throws InterruptedException {
        long[] nanos = new long[order.pairs];
        AtomicInteger begun = new AtomicInteger();
        boolean perPair = order.lockPer.equals("pair");
        long startedAt = System.nanoTime();
        Workers.run(order.workers, worker -> {
            for (int pair = begun.getAndIncrement(); pair < order.pairs; pair = begun.getAndIncrement()) {
                long from = System.nanoTime();
                RLock lock = lock(servers, order.kind, order.prefix + (perPair ? pair : worker));
                lock.lock();
                lock.unlock();
                nanos[pair] = System.nanoTime() - from;
            }
        });
        Report report = new Report();
        report.millis = (System.nanoTime() - startedAt) / 1e6;
        Arrays.sort(nanos);
        report.p50Micros = nanos[(int) (0.5 * nanos.length)] / 1e3;
        report.p99Micros = nanos[(int) (0.99 * nanos.length)] / 1e3;
        return report;
    }

    private static RLock lock(List<RedissonClient> servers, String kind, String name) {
        RedissonClient first = servers.get(0);
        switch (kind) {
            case "lock":
                return first.getLock(name);
            case "red":
                return new RedissonRedLock(servers.stream().map(server -> server.getLock(name)).toArray(RLock[]::new));
            case "multi":
                return first.getMultiLock(
                    first.getLock(name + ":a"), first.getLock(name + ":b"), first.getLock(name + ":c"));
            default:
                throw new IllegalArgumentException("there is no kind " + kind);
        }
    }

    private Pairs() {}
}
