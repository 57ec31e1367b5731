package effectredislock.bench;

import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** How a worker enters and leaves its section, for any kind of lock: blocking, as in most Java programs. */
interface Guarding {
    void acquire() throws InterruptedException;

    void release();

    static Guarding of(RedissonClient redisson, String kind, String name) {
        switch (kind) {
            case "lock":
                return of(redisson.getLock(name));
            case "fair":
                return of(redisson.getFairLock(name));
            case "read":
                return of(redisson.getReadWriteLock(name).readLock());
            case "write":
                return of(redisson.getReadWriteLock(name).writeLock());
            default:
                throw new IllegalArgumentException("there is no kind " + kind);
        }
    }

    static Guarding of(RSemaphore semaphore) {
        return new Guarding() {
            @Override
            public void acquire() throws InterruptedException {
                semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.release();
            }
        };
    }

    private static Guarding of(RLock lock) {
        return new Guarding() {
            @Override
            public void acquire() {
                lock.lock();
            }

            @Override
            public void release() {
                lock.unlock();
            }
        };
    }
}
