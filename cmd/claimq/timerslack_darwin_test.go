package main

const beRelaxed = "CLAIMQ_TEST_IS_RELAXED"

func tellTimerSlack() {}
