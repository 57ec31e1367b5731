-- Keeps what is known of the clients for a day, and longer where their waiters' scores count
-- longer: else those who died long ago would be taken for waiters in Java, each of which is waited
-- for.
--
-- KEYS[4], KEYS[5] as in skip_the_dead; the local `waiter_timeout`: Redisson's
-- fairLockWaitTimeout, milliseconds

redis.call('PEXPIRE', KEYS[5], math.max(86400000, 2 * waiter_timeout * redis.call('ZCARD', KEYS[4])))
