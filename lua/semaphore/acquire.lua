-- Takes permits, all or none, and remembers the grant under a marker of its own, so that
-- exactly this grant can be given back. Idempotent: sent twice for one marker it takes once.
--
-- KEYS[1]  the permits that are free, a string (Redisson's RSemaphore)
-- KEYS[2]  the ids of a permit semaphore of this name
-- KEYS[3]  the marker of this grant, a string: its permits
-- KEYS[4]  the channel
-- KEYS[5], KEYS[6] and ARGV[5] to ARGV[10] are only here for a client that takes places:
-- KEYS[5]  the places (see include/permit_places/place_at.lua)
-- KEYS[6]  what they want
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[2]  how many permits
-- ARGV[3]  how long the marker lives, milliseconds; not beyond the end of the counter
-- ARGV[4]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[5]  the client
-- ARGV[6]  how many permits it wants to be told of if it is denied these; 0: it will not wait
-- ARGV[7]  for how long it has waited for them, milliseconds
-- ARGV[8]  how many its other fibers want if it is granted these; 0: none of them waits
-- ARGV[9]  for how long they have waited, milliseconds
-- ARGV[10]  1 for a fiber that does not wait yet (see include/permit_places/take_place.lua)
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    { 1 granted or 0 denied, how many permits are free now (and not kept for others,
--          if denied), 1 or 0: whether the semaphore exists, milliseconds: if denied, after
--          which to ask again (-1: not known); if granted, until the counter ends (-1: never) }

--@include deadline
--@include permits/anonymous
local publish, channel, places, wants = ARGV[4], KEYS[4], KEYS[5], KEYS[6]
local me, if_denied, denied_waited = ARGV[5], ARGV[6], ARGV[7]
local if_granted, granted_waited, is_new = ARGV[8], ARGV[9], ARGV[10]
local wanted_now = tonumber(ARGV[2])
local marker = redis.call('GET', KEYS[3])
local granted = marker and 1 or 0
--@include permits/begin
--@include permit_places/kept
local takes = not marker and available and available - kept >= wanted_now
local left_of_counter = (marker or takes) and redis.call('PTTL', KEYS[1])
if takes then
  granted = 1
  -- its permits end with the counter: what comes back later must not count for another one
  local life = tonumber(ARGV[3])
  if left_of_counter >= 0 and left_of_counter < life then
    -- 0 is left of a key in its last millisecond
    life = math.max(1, left_of_counter)
  end
  -- the marker first: if the script gets no further, it does no harm
  redis.call('SET', KEYS[3], ARGV[2], 'PX', life)
  available = redis.call('INCRBY', KEYS[1], -ARGV[2])
end
local has_ids = false
--@include permit_places/take_place
if created then
  --@include permit_places/tell
end
if granted == 0 and available then
  available = available - kept
end
return { granted, available or 0, available and 1 or 0, left_of_counter or left }
