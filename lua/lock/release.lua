-- Releases the lock, regardless of its hold count, and hands it over to the owner that has
-- waited longest. If no owner has a place, wakes one waiter of every client instead. An
-- owner that does not hold the lock loses its place.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- what follows is only here for a kind that is handed over (see hand_over.lua):
-- KEYS[3]  the places
-- KEYS[4]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody
-- ARGV[3]  the lease of the owner that it is handed over to, milliseconds
-- ARGV[4]  how long that owner's token is remembered, milliseconds; '' for a counter
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock was free, -1 another owner holds it

local nobody_waits = false
--@include hand_over/release
