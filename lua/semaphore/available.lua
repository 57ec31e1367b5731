-- Looks at a semaphore without touching it.
--
-- KEYS[1]  the permits that are free
--
-- reply    how many, or nil where there is no semaphore

--@include available
return available
