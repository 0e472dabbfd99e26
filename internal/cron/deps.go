package cron

import _ "github.com/adhocore/gronx"
