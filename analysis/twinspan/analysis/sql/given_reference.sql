-- The condition that others are compared with, where it is given with the question.
CREATE TABLE given_reference (condition_id VARCHAR);
