-- Defines raw(id): the 16 bytes that represent an id of 32 hexadecimal digits in Redis.

local function raw(id)
  return (string.gsub(id, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end
