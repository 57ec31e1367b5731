-- Takes several free locks for one owner, all or none. Idempotent.
--
-- KEYS     per lock: the lock, a hash { owner = hold count } (Redisson's RLock), and the
--          last fencing token of its name
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last tokens are remembered, milliseconds
--
-- reply    granted: { 1, the token of each lock }
--          not:     { 0, which lock is taken (from 0), milliseconds it has left (-1: no
--                     expiry), its holder }

local call = redis.call
local owner = ARGV[1]
-- by number: what a first sending of this very command has taken
local mine = {}
for i = 1, #KEYS, 2 do
  if call('EXISTS', KEYS[i]) == 1 then
    if call('HEXISTS', KEYS[i], owner) == 0 then
      if call('HEXISTS', KEYS[i], 'mode') == 1 then
        return redis.error_reply('WRONGTYPE a read-write lock')
      end
      return { 0, (i - 1) / 2, call('PTTL', KEYS[i]), call('HKEYS', KEYS[i])[1] }
    end
    mine[i] = true
  end
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local first = string.format('%.0f', now)
local reply = { 1 }
for i = 1, #KEYS, 2 do
  local token = now
  if mine[i] then
    token = tonumber(call('GET', KEYS[i + 1]) or 1)
  else
    -- as in include/next_token
    local last = redis.pcall('SET', KEYS[i + 1], first, 'PX', ARGV[3], 'GET')
    if last then
      if last.err then
        -- no token: what was taken before is given back
        for taken = 1, i - 2, 2 do
          call('HDEL', KEYS[taken], owner)
        end
        return last
      end
      last = tonumber(last)
      if last < 1000000000000000 then
        token = last + 1
        call('SET', KEYS[i + 1], token)
      elseif last >= token then
        token = last + 1
        call('SET', KEYS[i + 1], token, 'PX', ARGV[3])
      end
    end
    call('HSET', KEYS[i], owner, '1')
    call('PEXPIRE', KEYS[i], ARGV[2])
  end
  reply[(i + 3) / 2] = token
end
return reply
