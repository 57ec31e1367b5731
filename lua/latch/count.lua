-- Reads the count of a latch.
--
-- KEYS[1]  the count
--
-- reply    the count; 0 if there is none

--@include permits/available
return math.max(0, available or 0)
