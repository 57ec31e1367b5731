-- Takes the label of a client away, as the client has closed. Idempotent.
--
-- KEYS[1]  the label of the client (see set_label.lua)
--
-- reply    1 removed, 0 there was none

return redis.call('DEL', KEYS[1])
