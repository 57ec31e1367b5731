-- Reads the number of free permits.
--
-- KEYS[1]  the permits that are free
--
-- reply    how many, or nil if there is no semaphore

--@include permits/available
return available
