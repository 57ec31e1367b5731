package effectredislock.bench;

import java.util.concurrent.atomic.AtomicInteger;

/** Threads that wait for a lock that another process holds, and keep it once acquired. */
final class Waiters {
    static final class Order {
        String name;
        int waiters;
    }

    private final Library library;
    private final AtomicInteger gaveUp = new AtomicInteger();

    Waiters(Library library) {
        this.library = library;
    }

    void start(Order order) {
        for (int i = 0; i < order.waiters; i++) {
            Thread thread = new Thread(() -> {
                try {
                    library.guarding("lock", order.name, 0).acquire();
                } catch (Exception problem) {
                    gaveUp.incrementAndGet();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    int gaveUp() {
        return gaveUp.get();
    }
}
