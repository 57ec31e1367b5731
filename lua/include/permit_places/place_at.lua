-- Defines what there is to know of the places of clients that wait for permits.
--
-- Needs the locals `places`, { client = when it took its place, microseconds }, a zset of
-- ours, `wants`, our own hash, and `micros`. The fields of `wants`: client = how many
-- permits it wants; for how many seconds at a time these are kept for it (see is_kept); and,
-- until it asks again, the server time in microseconds at which it was told that they are
-- free; '' = when the last turn of clients that take no places ends.

-- Returns the client at a rank, since when it has had its place, how many permits it wants,
-- when it was told, and for how many seconds at a time permits are kept for it.
local function place_at(rank)
  local place = redis.call('ZRANGE', places, rank, rank, 'WITHSCORES')
  if not place[1] then
    return
  end
  local text = redis.call('HGET', wants, place[1]) or '1 0'
  local wanted, longest, told = string.match(text, '^(%d+) (%d+) ?(%d*)$')
  return place[1], tonumber(place[2]), tonumber(wanted), tonumber(told), tonumber(longest)
end

-- Whether a place is so old that free permits are kept for it. Several are kept in turns, as
-- other waiters get none meanwhile: each turn is four times as long as the last one,
-- up to `longest` seconds; then it is a quarter of the time.
local function is_kept(since, wanted, longest)
  local waited = (micros - since) / 1000000
  if wanted == 1 then
    return waited >= 0.1
  end
  if waited >= 4 * longest then
    return longest > 0 and waited % (4 * longest) < longest
  end
  local _, exponent = math.frexp(waited)
  return waited >= 1 and exponent % 2 == 1
end

-- Whether it was told that its permits are free, but has not asked for them for two seconds.
local function is_late(told)
  return told and (micros - told >= 2000000 or micros < told)
end

-- Sets a field of `wants`. A field that is new: `wants` may have been
-- evicted without the places.
local function note(field, text)
  if redis.call('HSET', wants, field, text) == 1 then
    redis.call('PEXPIRE', wants, 60000)
  end
end

--@include permit_places/remove
