-- Counts a consumer's heartbeat up and lists the deliveries that it holds. The consumer compares
-- the list with its own and so finds deliveries that it does not know.
-- KEYS: consumers, held requests of the consumer
-- ARGV: consumer
-- Answers the delivery ids.
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
return redis.call('HKEYS', KEYS[2])
