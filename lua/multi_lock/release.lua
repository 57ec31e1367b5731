-- Releases several locks of one owner, and hands each over as the release of a single lock
-- does (see lock/release.lua).
--
-- KEYS     per lock: the lock and its channel; and for kinds that are handed over its places
--          and the last fencing token of its name, or the lock again for a lock without tokens
-- ARGV[1]  owner
-- ARGV[2]  the lease of an owner that a lock is handed over to, milliseconds; empty without
--          places
-- ARGV[3]  how long that owner's token is remembered, milliseconds
-- ARGV[4]  and so on, per lock: PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to
--          tell nobody; or the owner that it is left to
--
-- reply    1 if all were released and nobody was woken to ask; otherwise per lock:
--          1 + how many clients were woken to ask: released
--          0 the lock was free, -1 another owner holds it

local each = ARGV[2] == '' and 2 or 4
local places = {}
for last = 4, each == 4 and #KEYS or 0, 4 do
  places[last / 4] = KEYS[last - 1]
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
local args = { ARGV[1], '', ARGV[2], ARGV[3] }
for i = 1, #ARGV - 3 do
  local first = (i - 1) * each
  for j = 1, each do
    keys[j] = KEYS[first + j]
  end
  args[2] = ARGV[3 + i]
  -- pcall: a foreign type at one name must not stop the others
  local is_done, released = pcall(release, keys, args)
  if not is_done then
    released = -redis.call('EXISTS', keys[1])
  end
  is_plain = is_plain and released == 1
  reply[i] = released
end
return is_plain and 1 or reply
