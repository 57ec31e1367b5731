-- Tells a client that it has lost a lock: it then checks which of its locks it still holds.
--
-- KEYS[1]  the label of the client (see set_label.lua); its name is also that
--          of the channel to which the client subscribes
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1

redis.pcall(ARGV[1], KEYS[1], 'taken')
return 1
