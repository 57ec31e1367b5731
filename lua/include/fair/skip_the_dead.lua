-- Removes dead waiters from the head of a fair queue, at most a hundred. Sets the locals
-- `now` (epoch milliseconds), `first` (the owner that was at the head) and `head` (the
-- first that is alive, or false). If more are dead, `head` is one of them: a client that
-- sees it refreshes the queue again at once.
-- A waiter of this library is dead when its client has not reported for too long, any
-- other when its score is reached (Redisson's rule).
--
-- Redisson subtracts its timeout from the scores of all waiters whenever one of them is
-- served. Here only the scores of the first few are set (see keep_front): no command
-- depends on the length of the queue.
--
-- A stall is not a death: a client's silence counts only while the server was answering
-- others. Clients with waiters report every half second, so if the server ran nothing for
-- this queue for 600 ms, it stood still, or could not be reached, or nobody waits. Clients
-- that were alive before the gap then get, once, three times its length to report, but at
-- most five seconds: a client that reconnects pauses between attempts for at most as long
-- as the outage has lasted. Of each later gap, until the client reports, one second counts
-- as silence. If the server's clock was set back, or a master has taken over whose clock is
-- behind, nobody knows how long the gap was: clients that were alive get five seconds from now.
-- Otherwise the dead among them would be alive until the clock had caught up.
--
-- KEYS[3]  the queue, a list of owners (Redisson's)
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive,
--            'seen' = epoch milliseconds at which a script last ran here,
--            owner = a number that its client alone knows, by which it recognises the message
--            that hands the lock over to it }, our own zset
-- Needs the local `time`, the server's, from the TIME command.

local now = time[1] * 1e3 + math.floor(time[2] / 1000)
local first = redis.call('LINDEX', KEYS[3], 0)
local head = first
local seen = head and tonumber(redis.call('ZSCORE', KEYS[5], 'seen'))
if seen then
  local still = now - seen
  if still > 600 or still < 0 then
    -- without the secrets of the waiters, which are too many to look at
    local least, most = math.min(now, seen), math.max(now, seen) + 6e5
    local clients = redis.call('ZRANGE', KEYS[5], least, most, 'BYSCORE', 'WITHSCORES')
    for i = 1, #clients, 2 do
      local alive = tonumber(clients[i + 1])
      if #clients[i] == 36 and still < 0 and alive > now then
        redis.call('ZADD', KEYS[5], now + 5000.5, clients[i])
      elseif #clients[i] == 36 and alive > seen and alive < now + 1000 then
        -- half a millisecond marks that the client has had its extra time; reports set
        -- whole ones
        local until_then = alive % 1 == 0 and now + math.min(3 * still, 5000) + 0.5
          or alive + math.max(still - 1000, 0)
        redis.call('ZADD', KEYS[5], until_then, clients[i])
      end
    end
  end
  redis.call('ZADD', KEYS[5], now, 'seen')
end
local passed
-- Returns whether a head is alive. Sets its score if Redisson would pass over a live waiter
-- of this library, or never pass over a waiter without a score. Of a dead one of this library,
-- `passed` is the score.
local function keep_head(owner)
  local due = tonumber(redis.call('ZSCORE', KEYS[4], owner))
  local alive = tonumber(redis.call('ZSCORE', KEYS[5], string.sub(owner, 1, 36)))
  if alive and alive <= now or not alive and due and due <= now then
    passed = alive and due or passed
    return false
  end
  if not due or alive and due < now + 150000 then
    redis.call('ZADD', KEYS[4], now + 300000, owner)
  end
  return true
end
local dead = {}
while head and #dead < 100 and not keep_head(head) do
  dead[#dead + 1] = head
  redis.call('LPOP', KEYS[3])
  head = redis.call('LINDEX', KEYS[3], 0)
end
if dead[1] then
  redis.call('ZREM', KEYS[4], unpack(dead))
  redis.call('ZREM', KEYS[5], unpack(dead))
end
if passed and head then
  -- those behind no longer wait for what the dead had added (see give_up.lua)
  local added = passed - now - math.max(0, redis.call('PTTL', KEYS[1]))
  for _, owner in ipairs(added > 0 and redis.call('LRANGE', KEYS[3], 0, 7) or {}) do
    local due = tonumber(redis.call('ZSCORE', KEYS[4], owner))
    if due and due > passed then
      redis.call('ZADD', KEYS[4], due - added, owner)
    end
  end
  keep_head(head)
end
