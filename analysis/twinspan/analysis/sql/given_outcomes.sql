-- Outcome rules that are given with the question; empty where those of the runs are to count.
CREATE TABLE given_outcomes (
    action VARCHAR, step VARCHAR, field VARCHAR, operator VARCHAR, literal VARCHAR
);
