-- Answers the number of all rejects.
-- KEYS: rejected, oversize
return redis.call('LLEN', KEYS[1]) + math.floor(redis.call('LLEN', KEYS[2]) / 2)
