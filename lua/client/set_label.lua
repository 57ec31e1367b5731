-- Stores the label of a client for others to read. Idempotent.
--
-- KEYS[1]  the label of the client, a string
-- ARGV[1]  label
-- ARGV[2]  how long it is kept, milliseconds
-- ARGV[3]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1

--@include deadline
redis.call('SET', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
