package effectredislock.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Locks that are held, with the watchdog renewing them: taken and released all at once. */
final class Holding {
    static final class Order {
        String kind;
        List<String> names;
    }

    /** The owner, in place of a thread id. */
    private static final long OWNER = 1;

    private final RedissonClient redisson;
    private List<RLock> locks = List.of();

    Holding(RedissonClient redisson) {
        this.redisson = redisson;
    }

    void take(Order order) throws InterruptedException, ExecutionException {
        List<RLock> taken = new ArrayList<>();
        List<RFuture<Void>> replies = new ArrayList<>();
        for (String name : order.names) {
            RLock lock = order.kind.equals("fair") ? redisson.getFairLock(name) : redisson.getLock(name);
            taken.add(lock);
            replies.add(lock.lockAsync(OWNER));
        }
        await(replies);
        locks = taken;
    }

    /** Redisson reports no losses: they are counted in Redis. */
    int lost() {
        return 0;
    }

    void release() throws InterruptedException, ExecutionException {
        List<RFuture<Void>> replies = new ArrayList<>();
        for (RLock lock : locks) replies.add(lock.unlockAsync(OWNER));
        await(replies);
    }

    private static void await(List<RFuture<Void>> replies) throws InterruptedException, ExecutionException {
        for (CompletionStage<Void> reply : replies) reply.toCompletableFuture().get();
    }
}
