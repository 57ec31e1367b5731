-- Keeps a runner alive, and puts those of its shards that this process still holds by a lease that has
-- not ended under one new lease, which extend.lua extends. Nothing is taken that is not held, and
-- nothing is extended for an address at which another process has registered since. Idempotent.
--
-- KEYS[1]  the runners, see register.lua
-- KEYS[2]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  how long a runner that no longer counts as alive keeps its machine id, milliseconds
-- ARGV[5]  the number of this request, different for each request of the process
-- ARGV[6...]  shards
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the epoch of the new lease, and the positions of the shards that are not held, from 1 up;
--          -1 instead if another process has registered at this address

--@include deadline
--@include registered_here
--@include keep_runner
local first_shard = 6
local takes_free = false
--@include lease_shards
return reply
