package effectredislock.bench;

import java.util.List;

/** A library whose locks are measured. */
interface Library {
    /** A lock of some kind. {@code permits} are those of a semaphore. */
    Guarding guarding(String kind, String name, int permits) throws Exception;

    /** Takes locks, and keeps them. */
    void hold(String kind, List<String> names, long owner) throws Exception;

    /** Releases what that owner holds. */
    void release(long owner) throws Exception;
}
