package effectredislock.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** Threads that do the same thing at once. */
final class Workers {
    interface Work {
        void run(int worker) throws Exception;
    }

    static void run(int count, Work work) throws InterruptedException {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int worker = i;
            Thread thread = new Thread(() -> {
                try {
                    work.run(worker);
                } catch (Throwable problem) {
                    failure.compareAndSet(null, problem);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) thread.join();
        if (failure.get() != null) throw new IllegalStateException("a worker failed: " + failure.get(), failure.get());
    }

    private Workers() {}
}
