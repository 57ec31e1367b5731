-- Wakes one waiter of every client. Sets `listeners`, a local of the script, to how many
-- clients received the message.
--
-- KEYS[2]  the channel
-- ARGV[2]  PUBLISH, or SPUBLISH

-- pcall: a message is a hint; a user without permission to publish has still released
listeners = redis.pcall(ARGV[2], KEYS[2], '0')
if type(listeners) ~= 'number' then
  listeners = 0
end
