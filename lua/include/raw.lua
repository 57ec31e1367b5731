-- Defines raw(id): the 16 bytes that stand in Redis for an id of 32 hexadecimal digits.

local function raw(id)
  return (string.gsub(id, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end
