-- Sets the locals `kept`, how many of the free permits are not for this client, and `left`,
-- in how many milliseconds it should ask again (-1: not known). Permits are kept for the
-- oldest place once it has waited for long enough (see place_at.lua), unless its client does
-- not listen, or does not come after it was told; and all of them for 10 ms for clients that
-- take no places, when it is their turn (see tell.lua).
--
-- Needs the locals `available`, `wanted_now` (how many permits the client asks for), `me` (the
-- client, which is not denied permits for the sake of its own place), `channel`, `publish`, `places`, `wants`, `digits` and `micros` (see deadline.lua).

local kept = 0
local left = -1
if places and available and available >= wanted_now and redis.call('EXISTS', places, wants) > 0 then
  local turn = redis.call('HGET', wants, '')
  local since_turn = turn and micros - turn or 10000
  if since_turn >= 0 and since_turn < 10000 then
    kept = available
    left = math.ceil((10000 - since_turn) / 1000)
  else
    --@include permit_places/place_at
    local numsub = publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
    local client, since, wanted, told = place_at(0)
    local looks = 100
    while client and client ~= me and is_due(since, wanted) and available - wanted < wanted_now and looks > 0 do
      looks = looks - 1
      -- pcall: without permission for PUBSUB the client counts as alive
      local own = channel .. ':' .. client
      if is_late(told) or redis.pcall('PUBSUB', numsub, own)[2] == 0 then
        remove(client)
        client, since, wanted, told = place_at(0)
      else
        kept = math.min(wanted, available)
        if not told and wanted <= available then
          redis.pcall(publish, own, available)
          note(client, wanted .. ' ' .. digits)
        end
        break
      end
    end
  end
end
