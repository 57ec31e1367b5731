-- Lets the oldest place in a little earlier than others where a lock stays locked after its release
-- (see lock/keep.lua): when the kept time ends everybody asks at once, and the client nearest to
-- Redis would win.
--
-- KEYS[1]  the lock: { <owner>:kept = for how long it is reserved, milliseconds }
-- ARGV[1]  owner
-- Needs the locals `places`, the key of the places, and `denial`: what is left of both times, and
-- the field. The first is set to what is left of the kept time, if the owner has the oldest place;
-- if that is over, the lock is freed, and `denial` set to nil.

if redis.call('ZRANGE', places, 0, 0)[1] == ARGV[1] then
  denial[1] = denial[1] - redis.call('HGET', KEYS[1], denial[2])
  if denial[1] <= 0 then
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', places, ARGV[1])
    denial = nil
  end
end
