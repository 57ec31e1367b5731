-- Takes several free locks for one owner, all or none. Idempotent.
--
-- KEYS     the locks, hashes { owner = hold count } (Redisson's RLock); then, in the same
--          order, the last fencing token of each one's name; or the lock again for a lock
--          without tokens
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last tokens are remembered, milliseconds
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the token, if all got the same one, which is the server time in
--                   microseconds; otherwise { 1, the token of each lock }
--          denied:  { 0, which lock is held (from 0), milliseconds it has left (-1: no
--                     expiry), its holder }

--@include deadline
local call = redis.call
local owner = ARGV[1]
local count = #KEYS / 2
-- by index: the locks that this same command took when it was sent before
local mine = {}
-- usually all are free; Lua unpacks fewer than 8000 values
if count >= 7000 or call('EXISTS', unpack(KEYS, 1, count)) > 0 then
  for i = 1, count do
    if call('EXISTS', KEYS[i]) == 1 then
      if call('HEXISTS', KEYS[i], owner) == 0 then
        if call('HEXISTS', KEYS[i], 'mode') == 1 then
          return redis.error_reply('WRONGTYPE a read-write lock')
        end
        return { 0, i - 1, call('PTTL', KEYS[i]), call('HKEYS', KEYS[i])[1] }
      end
      mine[i] = true
    end
  end
end

--@include tokens/next_token
local are_same = true
local reply = { 1 }
for i = 1, count do
  local token
  if mine[i] and KEYS[count + i] ~= KEYS[i] then
    token = tonumber(call('GET', KEYS[count + i]) or 1) or 1
  else
    local refusal
    token, refusal = next_token(KEYS[i], KEYS[count + i], ARGV[3])
    if not token then
      -- the locks acquired so far are given back
      for taken = 1, i - 1 do
        call('HDEL', KEYS[taken], owner)
      end
      return refusal
    end
  end
  if not mine[i] then
    call('HSET', KEYS[i], owner, '1')
    call('PEXPIRE', KEYS[i], ARGV[2])
  end
  are_same = are_same and token == micros
  reply[i + 1] = token
end
return are_same and micros or reply
