package effectredislock.bench;

/** How a worker enters and leaves its section, for any kind of lock: blocking, as in most Java programs. */
interface Guarding {
    void acquire() throws Exception;

    void release() throws Exception;
}
