-- Takes shards that are free, or that this process holds already, for one lease. Nothing is taken
-- for an address at which another process has registered since. Idempotent: sent twice it answers
-- with the same grants.
--
-- KEYS[1]  the runners, see register.lua
-- KEYS[2]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  the number of this request, different for each request of the process
-- ARGV[5...]  shards
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the epoch of the new lease, and the positions of the shards that others hold, from 1 up;
--          -1 instead if another process has registered at this address

--@include deadline
--@include registered_here
local first_shard = 5
local takes_free = true
--@include lease_shards
return reply
