-- Releases the lock, regardless of its hold count, and hands it over to the owner that has
-- waited longest. If no owner has a place, wakes one waiter of every client instead. An
-- owner that does not hold the lock loses its place.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3] and ARGV[3] are only here for a kind that is handed over:
-- KEYS[3]  the places (see hand_over.lua)
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody
-- ARGV[3]  how long it is kept for the owner that it is handed over to, milliseconds
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock was free, -1 another owner holds it

local nobody_waits = false
--@include hand_over/release
