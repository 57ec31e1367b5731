-- By which name people know a client.
--
-- KEYS[1]  the label of the client (see set_label.lua)
--
-- reply    the label, or nil

return redis.call('GET', KEYS[1])
