-- Tells a client that a lock was taken from it: it looks at once which of its locks it still has.
--
-- KEYS[1]  the label of the client (see set_label.lua), by whose name goes the channel on which it listens
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1

redis.pcall(ARGV[1], KEYS[1], 'taken')
return 1
