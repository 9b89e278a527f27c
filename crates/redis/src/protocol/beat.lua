-- Renews the heartbeat of a consumer, and lists the deliveries that Redis holds for it. The
-- consumer compares this list with its own, to find deliveries that it does not know.
-- KEYS: consumers, held requests of the consumer
-- ARGV: consumer
-- Answers the delivery ids.
-- Never changes a held request, and never sets the heartbeat back.
beat(KEYS[1], ARGV[1])
return redis.call('HKEYS', KEYS[2])
