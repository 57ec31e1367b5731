package effectredislock.bench;

import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Threads that wait for a lock that another process holds, and keep it once acquired. */
final class Waiters {
    static final class Order {
        String name;
        int waiters;
    }

    private final RedissonClient redisson;
    private final AtomicInteger gaveUp = new AtomicInteger();

    Waiters(RedissonClient redisson) {
        this.redisson = redisson;
    }

    void start(Order order) {
        for (int i = 0; i < order.waiters; i++) {
            Thread thread = new Thread(() -> {
                RLock lock = redisson.getLock(order.name);
                try {
                    lock.lock();
                } catch (RuntimeException problem) {
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
