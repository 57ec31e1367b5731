-- Tells that permits are free: the clients with the oldest places, as many of them as there
-- are permits for, each on its own channel; or all clients, if none has a place. Clients
-- that are not subscribed lose their places. Looks at no more than a hundred. Sets the local
-- `listeners` to how many clients received it on the shared channel.
--
-- Clients without places (Redisson's) always receive it on the shared channel. If clients
-- with places wait as well, the number begins with a zero, which tells these to ignore it.
-- Every 100 ms the clients without places get a turn, during which all others are refused (see
-- kept.lua, and turn/begin.lua for how long).
--
-- Needs the locals `available`, `channel`, `publish`, `places` and `wants` (see
-- place_at.lua; nil if there are no places).

local listeners = 0
if available > 0 then
  local has_places = places and redis.call('EXISTS', places) == 1
  if not has_places then
    -- pcall: a message is a hint; a user without permission to publish has still released
    listeners = redis.pcall(publish, channel, available)
    if type(listeners) ~= 'number' then
      listeners = 0
    end
  end
  if has_places or (places and listeners > 0) then
    --@include digits
    --@include permit_places/place_at
    local numsub = publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
    local counts = redis.pcall('PUBSUB', numsub, channel, channel .. ':ours')
    -- a user without permission for PUBSUB: there may be some
    if not counts[4] or counts[2] > counts[4] then
      if has_places then
        redis.pcall(publish, channel, '0' .. available)
      end
      local turn_ends = redis.call('HGET', wants, '')
      --@include turn/left
      if turn_left <= -90000 then
        --@include turn/begin
        note('', string.format('%.0f', micros + turn_left))
        if not has_places then
          redis.call('PEXPIRE', wants, turn_left / 1000 + 90)
        end
      end
    end
    local left = available
    local rank = 0
    -- how many places that were looked at wait for more than is left, and are not due
    local undue = 0
    local looks = has_places and 100 or 0
    while left > 0 and looks > 0 do
      looks = looks - 1
      local client, since, wanted, told, longest = place_at(rank)
      if not client then
        break
      end
      if is_late(told) then
        remove(client)
      elseif told then
        left = left - wanted
        rank = rank + 1
      elseif wanted <= left then
        local heard = redis.pcall(publish, channel .. ':' .. client, available)
        if type(heard) == 'number' and heard > 0 then
          note(client, wanted .. ' ' .. longest .. ' ' .. digits)
          left = left - wanted
          rank = rank + 1
        else
          remove(client)
        end
      elseif rank == undue and is_kept(since, wanted, longest) then
        break
      else
        undue = undue + 1
        rank = rank + 1
      end
    end
  end
end
