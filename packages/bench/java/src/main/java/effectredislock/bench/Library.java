package effectredislock.bench;

import java.util.List;

/** A library whose locks are measured. */
interface Library {
    /** A lock of some kind. {@code permits} are those of a semaphore. */
    Guarding guarding(String kind, String name, int permits) throws Exception;

    /** Takes locks that are free, and keeps them. */
    void hold(String kind, List<String> names) throws Exception;

    /** Releases what is held. */
    void release() throws Exception;
}
