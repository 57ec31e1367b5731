-- Defines extend(key, lease): the key lasts for at least `lease` milliseconds from now, also if
-- somebody has removed its expiry. A lease of '0' changes nothing.

local function extend(key, lease)
  if lease == '0' or redis.pcall('PEXPIRE', key, lease, 'GT') == 1 then
    return
  end
  -- it lasts longer already, or for ever, which is longest to GT; or this is Redis 6, which
  -- has no GT
  if redis.call('PTTL', key) < tonumber(lease) then
    redis.call('PEXPIRE', key, lease)
  end
end
