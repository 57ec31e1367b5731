package effectredislock.bench;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

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
        double p10Micros;
        double p50Micros;
        double p99Micros;
        double millis;
    }

    static Report run(Library library, Order order) throws InterruptedException {
        long[] nanos = new long[order.pairs];
        AtomicInteger begun = new AtomicInteger();
        boolean perPair = order.lockPer.equals("pair");
        long startedAt = System.nanoTime();
        Workers.run(order.workers, worker -> {
            for (int pair = begun.getAndIncrement(); pair < order.pairs; pair = begun.getAndIncrement()) {
                long from = System.nanoTime();
                Guarding lock = library.guarding(order.kind, order.prefix + (perPair ? pair : worker), 0);
                lock.acquire();
                lock.release();
                nanos[pair] = System.nanoTime() - from;
            }
        });
        Report report = new Report();
        report.millis = (System.nanoTime() - startedAt) / 1e6;
        Arrays.sort(nanos);
        report.p10Micros = nanos[(int) (0.1 * nanos.length)] / 1e3;
        report.p50Micros = nanos[(int) (0.5 * nanos.length)] / 1e3;
        report.p99Micros = nanos[(int) (0.99 * nanos.length)] / 1e3;
        return report;
    }

    private Pairs() {}
}
