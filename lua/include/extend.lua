-- Defines extend(key, lease): the key lasts for at least `lease` milliseconds from now, also if
-- somebody has removed its expiry. A lease of '0' changes nothing.

local function extend(key, lease)
  if lease == '0' or redis.pcall('PEXPIRE', key, lease, 'GT') == 1 then
    return
  end
  -- Either the key lasts longer already, or it has no expiry, which GT takes for the longest of
  -- all, or the server does not know GT, like Redis 6.
  if redis.call('PTTL', key) < tonumber(lease) then
    redis.call('PEXPIRE', key, lease)
  end
end
