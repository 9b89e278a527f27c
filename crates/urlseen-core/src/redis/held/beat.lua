-- Increments the heartbeat of a consumer, and lists the deliveries that the consumer holds. The
-- consumer compares the list with its own, and so finds unknown deliveries.
-- KEYS: consumers, held requests of the consumer
-- ARGV: consumer
-- Returns the delivery ids.
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
return redis.call('HKEYS', KEYS[2])
