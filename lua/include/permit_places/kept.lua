-- Sets the locals `kept`, how many of the free permits are not for this client, and `left`,
-- in how many milliseconds it should ask again (-1: not known). Permits are kept for the
-- oldest of the places that are due (see place_at.lua), unless its client is not subscribed, or
-- does not ask after it was told; and all of them for clients without places, during their turn
-- (see tell.lua).
--
-- Needs the locals `available`, `wanted_now` (how many permits the client asks for), `me` (the
-- client, one of whose fibers that wait is not denied permits for the sake of its own place), `is_new`
-- (see take_place.lua), `channel`, `publish`, `places`, `wants`, `digits` and `micros` (see deadline.lua).

local kept = 0
local left = -1
if places and available and available >= wanted_now and redis.call('EXISTS', places, wants) > 0 then
  local turn_ends = redis.call('HGET', wants, '')
  --@include turn/left
  if turn_left > 0 then
    kept = available
    left = math.ceil(turn_left / 1000)
  else
    --@include permit_places/place_at
    local numsub = publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
    local rank = 0
    local looks = 100
    while looks > 0 do
      looks = looks - 1
      local client, since, wanted, told, longest = place_at(rank)
      if not client or (client == me and is_new ~= '1') then
        break
      end
      if is_kept(since, wanted, longest) then
        if available - wanted >= wanted_now then
          break
        end
        -- pcall: without permission for PUBSUB the client counts as alive
        local own = channel .. ':' .. client
        if is_late(told) or redis.pcall('PUBSUB', numsub, own)[2] == 0 then
          remove(client)
        else
          kept = math.min(wanted, available)
          if not told and wanted <= available then
            redis.pcall(publish, own, available)
            note(client, wanted .. ' ' .. longest .. ' ' .. digits)
          end
          break
        end
      elseif wanted == 1 then
        break
      else
        rank = rank + 1
      end
    end
  end
end
