package effectredislock.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson with its defaults, except for the address and the lease. */
final class RedissonLibrary implements Library {
    private final List<RedissonClient> servers = new ArrayList<>();
    private final RedissonClient first;
    /** By owner, in place of a thread id. */
    private final Map<Long, List<RLock>> held = new ConcurrentHashMap<>();

    RedissonLibrary(long leaseMillis, List<String> ports) {
        for (String port : ports) {
            Config config = new Config();
            config.setLockWatchdogTimeout(leaseMillis);
            config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
            servers.add(Redisson.create(config));
        }
        first = servers.get(0);
    }

    @Override
    public Guarding guarding(String kind, String name, int permits) {
        switch (kind) {
            case "lock":
                return of(first.getLock(name));
            case "fair":
                return of(first.getFairLock(name));
            case "read":
                return of(first.getReadWriteLock(name).readLock());
            case "write":
                return of(first.getReadWriteLock(name).writeLock());
            case "semaphore":
                RSemaphore semaphore = first.getSemaphore(name);
                semaphore.trySetPermits(permits);
                return of(semaphore);
            case "red":
                return of(
                    new RedissonRedLock(servers.stream().map(server -> server.getLock(name)).toArray(RLock[]::new)));
            case "multi":
                return of(first.getMultiLock(
                    first.getLock(name + ":a"), first.getLock(name + ":b"), first.getLock(name + ":c")));
            default:
                throw new IllegalArgumentException("there is no kind " + kind);
        }
    }

    /** All at once, with the watchdog renewing them. */
    @Override
    public void hold(String kind, List<String> names, long owner) throws InterruptedException, ExecutionException {
        List<RLock> taken = new ArrayList<>();
        List<RFuture<Void>> replies = new ArrayList<>();
        for (String name : names) {
            RLock lock = kind.equals("fair") ? first.getFairLock(name) : first.getLock(name);
            taken.add(lock);
            replies.add(lock.lockAsync(owner));
        }
        await(replies);
        held.put(owner, taken);
    }

    @Override
    public void release(long owner) throws InterruptedException, ExecutionException {
        List<RFuture<Void>> replies = new ArrayList<>();
        for (RLock lock : held.getOrDefault(owner, List.of())) replies.add(lock.unlockAsync(owner));
        await(replies);
    }

    private static void await(List<RFuture<Void>> replies) throws InterruptedException, ExecutionException {
        for (CompletionStage<Void> reply : replies) reply.toCompletableFuture().get();
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

    private static Guarding of(RSemaphore semaphore) {
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
}
