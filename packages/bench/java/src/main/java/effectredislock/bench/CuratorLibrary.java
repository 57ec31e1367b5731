package effectredislock.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** ZooKeeper's locks, by Curator's recipe. A lock outlives its process by the timeout of its session. */
final class CuratorLibrary implements Library {
    private final CuratorFramework curator;
    /** A mutex belongs to the thread that acquired it: one thread takes and releases what is held. */
    private final ExecutorService holder = Executors.newSingleThreadExecutor();
    private final List<InterProcessMutex> held = new ArrayList<>();

    CuratorLibrary(long leaseMillis, List<String> ports) throws InterruptedException {
        String servers = ports.stream().map(port -> "127.0.0.1:" + port).collect(Collectors.joining(","));
        curator = CuratorFrameworkFactory.newClient(
            servers, (int) leaseMillis, 15_000, new ExponentialBackoffRetry(1000, 3));
        curator.start();
        curator.blockUntilConnected();
    }

    @Override
    public Guarding guarding(String kind, String name, int permits) {
        InterProcessMutex mutex = mutex(name);
        return new Guarding() {
            @Override
            public void acquire() throws Exception {
                mutex.acquire();
            }

            @Override
            public void release() throws Exception {
                mutex.release();
            }
        };
    }

    @Override
    public void hold(String kind, List<String> names, long owner) throws Exception {
        holder.submit(() -> {
            for (String name : names) {
                InterProcessMutex mutex = mutex(name);
                mutex.acquire();
                held.add(mutex);
            }
            return null;
        }).get();
    }

    @Override
    public void release(long owner) throws Exception {
        holder.submit(() -> {
            for (InterProcessMutex mutex : held) mutex.release();
            held.clear();
            return null;
        }).get();
    }

    private InterProcessMutex mutex(String name) {
        return new InterProcessMutex(curator, "/locks/" + name);
    }
}
