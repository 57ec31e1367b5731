-- Defines what there is to know of the places of clients that wait for permits.
--
-- Needs the locals `places`, { client = when it took its place, microseconds }, a zset of
-- ours, `wants`, { client = how many permits it wants, and a space and the server time in
-- microseconds at which it was told that these are free, until it asks again;
-- '' = when clients that take no places last had their turn }, a hash of ours, and `micros`.

-- Returns the client at a rank, since when it has had its place, how many permits it wants,
-- and when it was told.
local function place_at(rank)
  local place = redis.call('ZRANGE', places, rank, rank, 'WITHSCORES')
  if not place[1] then
    return
  end
  local text = redis.call('HGET', wants, place[1]) or '1'
  local wanted, told = string.match(text, '^(%d+) ?(%d*)$')
  return place[1], tonumber(place[2]), tonumber(wanted), tonumber(told)
end

-- Whether the oldest place has waited for so long that free permits are kept for it. More
-- than one may be more than there will ever be: then they are kept for it during half of the
-- time, in turns that grow.
local function is_due(since, wanted)
  local waited = (micros - since) / 1000000
  if wanted == 1 then
    return waited >= 0.1
  end
  local _, exponent = math.frexp(waited)
  return waited >= 1 and exponent % 2 == 1
end

-- Whether it was told that its permits are free, but has not asked for them for two seconds.
local function is_late(told)
  return told and (micros - told >= 2000000 or micros < told)
end

-- Notes what a client wants, or '' when the turn was. A field that is new: `wants` may have been
-- evicted without the places.
local function note(field, text)
  if redis.call('HSET', wants, field, text) == 1 then
    redis.call('PEXPIRE', wants, 60000)
  end
end

local function remove(client)
  redis.call('ZREM', places, client)
  redis.call('HDEL', wants, client)
end
