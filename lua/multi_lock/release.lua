-- Releases several locks of one owner, and hands each over as the release of a single lock
-- does (see lock/release.lua).
--
-- KEYS     per lock: the lock, its channel, and its places, these only for kinds that are
--          handed over
-- ARGV[1]  owner
-- ARGV[2]  how long a lock is kept for the owner that it is handed over to, milliseconds;
--          empty without places
-- ARGV[3]  and so on, per lock: PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to
--          tell nobody
--
-- reply    1 if all were released and nobody was woken to ask; otherwise per lock:
--          1 + how many clients were woken to ask: released
--          0 the lock was free, -1 another owner holds it

local each = ARGV[2] == '' and 2 or 3
local places = {}
for last = 3, each == 3 and #KEYS or 0, 3 do
  places[last / 3] = KEYS[last]
end
-- usually so, which one command tells of all
local nobody_waits = each == 2 or redis.call('EXISTS', unpack(places)) == 0

local function release(KEYS, ARGV)
  --@include hand_over/release
end

local is_plain = true
local reply = {}
-- the KEYS and ARGV of each
local keys = {}
local args = { ARGV[1], '', ARGV[2] }
for i = 1, #ARGV - 2 do
  local last = i * each
  keys[1] = KEYS[last - each + 1]
  keys[2] = KEYS[last - each + 2]
  keys[3] = places[i]
  args[2] = ARGV[2 + i]
  -- pcall: a foreign type at one name must not stop the others
  local is_done, released = pcall(release, keys, args)
  if not is_done then
    released = -redis.call('EXISTS', keys[1])
  end
  is_plain = is_plain and released == 1
  reply[i] = released
end
return is_plain and 1 or reply
