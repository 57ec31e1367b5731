package effectredislock.bench;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Workers that take and release, pair after pair, locks that nobody else wants. */
final class Pairs {
    static final class Order {
        String prefix;
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

    static Report run(RedissonClient redisson, Order order) throws InterruptedException {
        long[] nanos = new long[order.pairs];
        AtomicInteger begun = new AtomicInteger();
        boolean perPair = order.lockPer.equals("pair");
        long startedAt = System.nanoTime();
        Workers.run(order.workers, worker -> {
            for (int pair = begun.getAndIncrement(); pair < order.pairs; pair = begun.getAndIncrement()) {
                long from = System.nanoTime();
                RLock lock = redisson.getLock(order.prefix + (perPair ? pair : worker));
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

    private Pairs() {}
}
